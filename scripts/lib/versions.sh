# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The versions of every third-party server and tool that the tests run; defined here alone, except for what README.md names.
# tests/support/versions.py also reads this file, so each line is NAME='VERSION ...', oldest version
# first.  Sourced, never run.

# Kubernetes.  The oldest is built from Debian 12's source package, all others from Go modules
# (scripts/lib/gomod/kubernetes-VERSION).
readonly KUBERNETES_VERSIONS='1.20.2 1.24.17 1.30.14 1.33.13 1.35.4 1.36.3 1.37.2'
# The versions that continuous integration runs tests/contract on; `scripts/test sweep` runs all.
readonly KUBERNETES_CI_VERSIONS='1.20.2 1.35.4 1.37.2'

# etcd: 3.4 is Debian 12's, the others are Go modules.
readonly ETCD_VERSIONS='3.4.23 3.5.35 3.6.16 3.7.3'

# Database servers: the first of MariaDB and PostgreSQL is Debian 12's, the others are of Debian's sid.
readonly MYSQL_VERSIONS='9.7.4'
readonly MARIADB_VERSIONS='10.11 11.8.9'
readonly POSTGRESQL_VERSIONS='15 18.6'

# Tools with which users install steward; Go modules.  kustomize 5.8.3 requires Go 1.27.
readonly HELM_VERSIONS='4.3.1'
readonly KUSTOMIZE_VERSIONS='5.8.2'

# operator-verify of the Operator Framework, which checks the OLM bundle of a release; a Go module.
readonly OLM_VERSIONS='0.37.0'

# An S3 server that verifies signatures; a Go module.
readonly VERSITYGW_VERSIONS='1.8.0'
