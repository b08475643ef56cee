# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests of the reconcilers."""

import pytest

from support import databases, databaseuser
from support import steward as stw


@pytest.fixture(scope="module")
def controller(installed, steward_binary, tmp_path_factory):
    """A steward that reconciles, with no webhook before it: whatever a test writes is stored."""
    stw.uninstall_webhooks(installed)
    one = stw.Steward(steward_binary, installed, installed.kubeconfig_steward,
                      tmp_path_factory.mktemp("controller"), name="controller").start()
    yield one
    if one.running():
        assert one.stop() == 0, one.log_tail()


def _server(kind, there, folder):
    if not there():
        pytest.skip(f"{kind.engine} is not installed")
    one = kind(folder)
    try:
        yield one.create()
    finally:
        one.kill()


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory):
    """A support.databases.MariaDB; a test that stops it starts it again."""
    yield from _server(databases.MariaDB, databases.mariadb_there,
                       tmp_path_factory.mktemp("mariadb"))


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory):
    """A support.databases.PostgreSQL."""
    yield from _server(databases.PostgreSQL, databases.postgresql_there,
                       tmp_path_factory.mktemp("postgresql"))


@pytest.fixture(scope="module")
def scene(installed, steward_binary, tmp_path_factory, mariadb):
    """A databaseuser.Scene with the target "main", and no webhook before it."""
    stw.uninstall_webhooks(installed)
    one = databaseuser.Scene(installed, steward_binary, tmp_path_factory.mktemp("scene"),
                             {"main": mariadb})
    one.steward.start()
    yield one
    if one.steward.running():
        assert one.steward.stop() == 0, one.steward.log_tail()


@pytest.fixture
def shop(scene, namespace):
    """A namespace whose DatabaseUsers are gone, with their accounts, before it goes."""
    yield namespace
    if not scene.steward.running():
        scene.steward.start()
    scene.forget(namespace)
