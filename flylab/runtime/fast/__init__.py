"""The second call and those after it: the first one's findings are looked up, and only what may change is tested."""
