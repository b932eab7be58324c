"""The watch cache: a copy in memory of all that a store holds under one prefix, which keeps the store's contract itself.

image      what the cache shows: entries, snapshot, history at one revision, and who is told of its changes
follower   keeps an image in step with the store: lists, watches, tries again, verifies
replay     a watch that is answered from an image
own_writes what writers of this process have decoded already
watch_cache  the whole, as its users see it
"""

from storage.cache.image import Subscriber
from storage.cache.limits import CacheLimits
from storage.cache.watch_cache import WatchCache

__all__ = ["CacheLimits", "Subscriber", "WatchCache"]
