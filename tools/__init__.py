"""What authors of the course run; nothing in utils/ or notebooks/ imports it."""
