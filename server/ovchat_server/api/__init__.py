"""The domain: requests, answers, the rules that validate them, the errors.

Plain Python values only. Both doors read their wire format into these and write these back.
"""
