"""The REST door: public APIs as JSON and server-sent events, inside HttpBody messages.

`registry` has all of them; `codec` says what each consists of, `apis` does what they share.
"""
