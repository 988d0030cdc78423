# The commands for people. Every target installs its own needs; scripts/duckdb-lib.sh finds the SQL engine's library.

CARGO ?= cargo
PREFIX ?= /usr/local
TARGET_DIR := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
WITH_ENGINE := scripts/duckdb-lib.sh $(CARGO)
# Most tests wait for other processes, so more tests run at once than there are processors.
THREADS := RUST_TEST_THREADS="$${RUST_TEST_THREADS-$$(($$(getconf _NPROCESSORS_ONLN) + 4))}"
# macOS allows 256 open files unless told otherwise, and some tests need more.
FILES := ulimit -Sn 4096
WITHOUT := ANNALS_WITHOUT="$${ANNALS_WITHOUT-},$$(scripts/missing-parts.sh)"

.PHONY: help demo build test parts lint cross bench long mutants install stage book dist deb

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/\1|\2/' | awk -F'|' '{ printf "make %-10s %s\n", $$1, $$2 }'

demo: build ## the whole thing on the embedded sandbox: poll, archive, ask, verify
	@"$(TARGET_DIR)/release/annals" demo

# Builds the smallest test too: dependencies then get the same features as in `make test`, and cargo builds them once.
build: ## the optimised program, target/release/annals
	@$(WITH_ENGINE) build --release --bin annals --test tidy

# A test fails if its third-party program is missing, unless ANNALS_WITHOUT names the program.
test: parts ## every test but the long ones
	@$(FILES); $(THREADS) $(WITHOUT) $(WITH_ENGINE) test --release

# Installs the third-party programs that the tests need: 3 GB in the user's cache.
parts:
	@scripts/browser.sh install
	@scripts/promtool.sh install
	@scripts/object-stores.sh install
	@scripts/engines.sh install
	@scripts/lake-readers.sh install || true
	@scripts/python-duckdb.sh >/dev/null || true
	@scripts/python-schemathesis.sh >/dev/null || true

lint: ## formatting, clippy with warnings denied, and cargo-deny where it is installed
	@$(CARGO) fmt --check
	@$(CARGO) fmt --check --manifest-path scripts/mutants/Cargo.toml
	@$(CARGO) fmt --check --manifest-path tests/object-server/Cargo.toml
	@$(WITH_ENGINE) clippy --release --all-targets -- -D warnings
	@CARGO="$(CARGO)" scripts/deny.sh

cross: ## the program checked for Linux on arm64 (rustup target add aarch64-unknown-linux-gnu; apt-get install gcc-aarch64-linux-gnu)
	@CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
		$(WITH_ENGINE) check --release --bin annals

bench: ## speed, size and questions, printed as ratios; a few minutes
	@$(WITH_ENGINE) bench

long: parts ## the long run: large seeds and sizes, then the same tests on the engine built from source
	@scripts/object-stores.sh install-ceph || echo 'the test on Ceph will fail, unless ANNALS_WITHOUT=ceph skips it' >&2
	@$(FILES); $(THREADS) $(WITHOUT) ANNALS_LONG=1 $(WITH_ENGINE) test --release -- --include-ignored
	@$(FILES); $(THREADS) $(WITHOUT) $(CARGO) test --release --features bundled

# SAMPLE=300 SEED=5 plants 300 bugs in each room; ONLY=src/correlate/session.rs plants the bugs of one file.
mutants: ## bugs planted by a machine where the promise rests, which the room's tests must notice (cargo install cargo-mutants)
	@scripts/duckdb-lib.sh scripts/mutants.sh

install: build ## into PREFIX (/usr/local): bin/annals, and lib/annals for the engine's library
	@PREFIX="$(PREFIX)" TARGET_DIR="$(TARGET_DIR)" scripts/duckdb-lib.sh scripts/install.sh

book: ## the guide as a site, target/book/index.html (cargo install mdbook)
	@command -v mdbook >/dev/null || { echo 'make book needs mdbook: cargo install mdbook'; exit 1; }
	@mdbook build

# A program for other machines looks for the engine's library only beside itself.
stage: export ANNALS_FOR_OTHERS = 1
stage:
	@$(WITH_ENGINE) build --release --bin annals --test tidy
	@TARGET_DIR="$(TARGET_DIR)" CARGO="$(CARGO)" scripts/duckdb-lib.sh scripts/stage.sh

dist: stage ## a tarball, checksums and a list of parts (SBOM), in target/dist; needs python3
	@scripts/dist.sh

deb: stage ## a package for Debian and Ubuntu, in target/debian; needs python3 and cargo-deb (cargo install cargo-deb)
	@$(CARGO) deb --version >/dev/null 2>&1 || { echo 'make deb needs cargo-deb: cargo install cargo-deb'; exit 1; }
	@$(CARGO) deb --no-build --no-strip --output target/debian/
