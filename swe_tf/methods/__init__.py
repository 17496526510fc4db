"""The methods that can be compared, a file each, and their catalog."""
