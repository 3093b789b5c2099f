# SPDX-License-Identifier: Apache-2.0

"""Records why nova refused a request, soon after it did.

A *refusal* is an operation on a server that ended because no host was found
or left. nova notes it in the server's cell; :mod:`.refusals` reads these
notes, :mod:`.feed` remembers which were handled, :mod:`.explainer` asks
``explain``, :mod:`.record` makes a line of JSON of the answer, and
:mod:`.records` keeps it. A *turn* of :mod:`.recorder` reads the new refusals
and records them. A cell is *silent* if it does not answer.
"""
