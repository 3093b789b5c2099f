# SPDX-License-Identifier: Apache-2.0

"""Commands of the OpenStackClient: move plan apply, aggregate isolation.

The words of moves (``moves_*``):

- A *look* reads a server and its migrations once.
- A move's *turn* is its number in the plan, from 1.
- Its *own* migration is the latest that nova began for it.
- *Its host* is the host that the plan moves it from; the *expected* host is
  the one that the plan names, or expects nova to choose.
- A move *begins* when nova is asked for it, and has *begun* once this run has
  asked for it or seen it under way. It *begins anew*, as if it had not begun,
  if nova found no host and is to be asked again, or if nova no longer works on
  its migration.
- Room is *held* on the old host while a migration has an allocation there.
- A server is *left out* if --skip names it, or if only a shutdown would move
  it and it runs.
- A server is *stranded* if the plan has no move for it.

The words of isolation (``isolation_*``): *sync* is ``openstack aggregate
isolation sync``. It *records* each trait that it gives, as
:mod:`.isolation_step` says; a *leftover* is a recorded trait that no aggregate
of the host requires any more. A trait is *elsewhere* if a provider has it that
the host's servers can use and that is not the host's own.
"""
