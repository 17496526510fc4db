"""`swe demo`: a study of two arms, with and without sharing, and a page."""
