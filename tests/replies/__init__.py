"""Replies as models write them: styles of calls, settings around them, and the check of the reader by both."""
