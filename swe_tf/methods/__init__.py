"""The methods that can be compared, one file each, and their catalog."""
