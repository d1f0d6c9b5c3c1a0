"""`python -m ovchat_server`, the same as `ovchat`."""

from ovchat_server.cli import main

if __name__ == "__main__":
    main()
