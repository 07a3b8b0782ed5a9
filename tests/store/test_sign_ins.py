"""Signed-in browsers and personal tokens."""

from datetime import timedelta

from bot.store import NewToken, Store, TokenScope
from tests.store.conftest import Clock


def add(store: Store, clock: Clock, hash: str, login: str = "ada", days: float = 30) -> int:
    token = NewToken(
        hash=hash,
        login=login,
        user=7,
        name="ci",
        scope=TokenScope.STEER,
        created=clock(),
        expires=clock() + timedelta(days=days),
    )
    return store.personal_tokens.add(token).id


def test_a_sign_in_is_found_by_its_hash_until_it_ends(store: Store, clock: Clock) -> None:
    store.sign_ins.add("a", "ada", 7, clock(), clock())
    found = store.sign_ins.get("a")
    assert found is not None
    assert (found.login, found.user, found.created, found.seen) == ("ada", 7, clock(), clock())
    store.sign_ins.see("a", clock.passes(60))
    seen = store.sign_ins.get("a")
    assert seen is not None
    assert (seen.created, seen.seen) == (found.created, clock())
    store.sign_ins.end("a")
    assert store.sign_ins.get("a") is None


def test_a_cookie_ends_once_the_next_one_is_used(store: Store, clock: Clock) -> None:
    hour = timedelta(hours=1)
    store.sign_ins.add("a", "ada", 7, clock(), clock() + hour)
    assert not store.sign_ins.renew("a", "b", clock(), clock() + hour)
    clock.passes(3600)
    assert store.sign_ins.renew("a", "b", clock(), clock() + hour)
    assert not store.sign_ins.renew("a", "c", clock(), clock() + hour)
    before, following = store.sign_ins.get("a"), store.sign_ins.get("b")
    assert before is not None
    assert following is not None
    assert (before.ends, before.used, following.used) == (None, True, False)
    assert (following.login, following.created, following.first) == ("ada", before.created, "a")
    ends = clock() + timedelta(seconds=60)
    for _ in range(2):  # Of requests that arrive together each may be the first.
        store.sign_ins.take("b", clock(), ends)
    before, following = store.sign_ins.get("a"), store.sign_ins.get("b")
    assert before is not None
    assert following is not None
    assert (before.ends, following.ends, following.used) == (ends, None, True)
    store.sign_ins.end("b")
    assert [store.sign_ins.get(one) for one in "ab"] == [None, None]


def test_all_sign_ins_of_a_person_end(store: Store, clock: Clock) -> None:
    for one, login in (("a", "ada"), ("b", "Ada"), ("c", "rob"), ("d", "")):
        store.sign_ins.add(one, login, 7, clock(), clock())
    store.sign_ins.end_all("ada")
    assert [store.sign_ins.get(one) is not None for one in "abcd"] == [False, False, True, True]
    store.sign_ins.end_all("")
    assert store.sign_ins.get("c") is not None
    assert store.sign_ins.get("d") is None


def test_old_sign_ins_are_deleted(store: Store, clock: Clock) -> None:
    begun = clock()
    for one in "ab":
        store.sign_ins.add(one, "ada", 7, clock(), clock())
    store.sign_ins.see("b", clock.passes(100))
    store.sign_ins.delete_old(begun - timedelta(seconds=1), begun + timedelta(seconds=1))
    assert [store.sign_ins.get(one) is not None for one in "ab"] == [False, True]
    store.sign_ins.delete_old(begun + timedelta(seconds=1), begun)
    assert store.sign_ins.get("b") is None


def test_a_token_is_found_by_its_hash_until_it_is_revoked(store: Store, clock: Clock) -> None:
    made = add(store, clock, "a")
    store.personal_tokens.use(made, clock.passes(60))
    found = store.personal_tokens.get("a")
    assert found is not None
    assert (found.id, found.login, found.user, found.name) == (made, "ada", 7, "ci")
    assert (found.scope, found.used) == (TokenScope.STEER, clock())
    assert not store.personal_tokens.revoke(made, "rob")
    assert store.personal_tokens.revoke(made, "Ada")
    assert store.personal_tokens.get("a") is None
    assert not store.personal_tokens.revoke(made)


def test_tokens_are_listed_by_person(store: Store, clock: Clock) -> None:
    first, second = add(store, clock, "a"), add(store, clock, "b", login="rob")
    assert [one.id for one in store.personal_tokens.of("ADA")] == [first]
    assert [one.id for one in store.personal_tokens.of("")] == [first, second]


def test_expired_tokens_are_deleted_when_one_is_added(store: Store, clock: Clock) -> None:
    add(store, clock, "a", days=1)
    clock.passes(2 * 24 * 3600)
    add(store, clock, "b")
    assert store.personal_tokens.get("a") is None
