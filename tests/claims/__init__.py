"""One test per claim of the classic texts; notebooks/claims.md is made from them."""
