# SPDX-License-Identifier: Apache-2.0

"""Keep why nova refused a request, at the moment when it did.

A *refusal* is an operation on a server that ended because no host was found
or left. nova notes it in the server's cell; :mod:`.refusals` reads these
notes, :mod:`.feed` remembers how far that has come, :mod:`.explainer` asks
explain, :mod:`.record` makes one line of JSON of the answer, and
:mod:`.records` keeps it.
"""
