"""Reads many binary messages of one schema at once, straight into Arrow: what all formats share. Needs numpy."""
