# The commands of the project. Each one installs what it needs; see README.md.
ARCH := $(shell uname -m | sed -e s/x86_64/x64/ -e s/aarch64/arm64/)
NODE := node_modules/node-linux-$(ARCH)/bin/node
DEPS := node_modules/.package-lock.json

.PHONY: demo test soak compat check fix bench docs clean

demo: $(DEPS) ## install, build and start everything, then do a real job in a sandbox
	./aenv up --detach
	$(NODE) demo/main.ts

test: $(DEPS) ## all suites: fast, then those that boot microVMs
	$(NODE) tools/test/main.ts

soak: $(DEPS) ## the same behaviours with long waits, large files and many rounds
	AENV_SOAK=1 $(NODE) tools/test/main.ts

compat: $(DEPS) ## published E2B clients, old and new, against a node; writes docs/compat/e2b.md
	AENV_COMPAT=all $(NODE) tools/test/main.ts compatibility

check: $(DEPS) ## types, lint, format, room order, file sizes, generated files
	$(NODE) tools/check/main.ts

fix: $(DEPS) ## format and safe lint fixes, then regenerate what is generated
	node_modules/.bin/biome check --write .
	$(NODE) tools/docs/main.ts

docs: $(DEPS) ## regenerate docs/reference
	$(NODE) tools/docs/main.ts

bench: $(DEPS) ## measure, print the table, write bench/latest.json
	$(NODE) bench/main.ts

clean: ## stop the daemon and remove what the checkout built (not the home folder of aenv)
	if [ -x $(NODE) ]; then ./aenv down; fi
	rm -rf node_modules .build

$(DEPS): package.json package-lock.json $(wildcard packages/*/package.json)
	npm ci
	touch $@
