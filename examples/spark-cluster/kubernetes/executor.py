"""What the pod of an executor runs: Spark's executor, as the variables say that its driver has given to the pod."""

import os
import re
from pathlib import Path

import pyspark

home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
java_home, java_option = os.environ.get("JAVA_HOME"), re.compile(r"SPARK_JAVA_OPT_(\d+)")
options = {int(found[1]): value for name, value in os.environ.items() if (found := java_option.fullmatch(name))}
memory = os.environ["SPARK_EXECUTOR_MEMORY"]
arguments = {
    "driver-url": "SPARK_DRIVER_URL",
    "executor-id": "SPARK_EXECUTOR_ID",
    "cores": "SPARK_EXECUTOR_CORES",
    "app-id": "SPARK_APPLICATION_ID",
    "hostname": "SPARK_EXECUTOR_POD_IP",
    "podName": "SPARK_EXECUTOR_POD_NAME",
    "resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
}
command = [
    str(Path(java_home, "bin", "java")) if java_home else "java",
    *(options[number] for number in sorted(options)),
    *(f"-Xms{memory}", f"-Xmx{memory}"),
    *("-cp", os.pathsep.join(filter(None, [os.environ.get("SPARK_CONF_DIR"), f"{home}/jars/*"]))),
    "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
    *(part for name, variable in arguments.items() for part in (f"--{name}", os.environ[variable])),
]
os.environ["SPARK_HOME"] = str(home)
os.execvp(command[0], command)
