# Stands for a python that has no sitecustomize, as in cells, where Debian's is a link into the hidden /etc.
raise ModuleNotFoundError("No module named 'sitecustomize'", name="sitecustomize")
