"""Checks of the exercises: how they report, then one file per lesson."""
