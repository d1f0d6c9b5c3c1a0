"""The domain: requests, answers, the rules that validate them, the errors.

Plain Python values only: both doors decode their wire formats into them and encode them.
"""
