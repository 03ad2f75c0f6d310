"""What stands in for the images of training jobs: programs of this machine, and the mappings that name them."""
import os
import pathlib
import shutil

HERE = pathlib.Path(__file__).resolve().parent


def make_programs(folder):
    """A folder of programs under the names that upstream's commands use."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(shutil.which("python3"))
    # The commands are for OpenMPI; a machine may have another one under the plain name.
    if shutil.which("mpirun.openmpi"):
        (programs / "mpirun").symlink_to(shutil.which("mpirun.openmpi"))
    (programs / "torchrun").write_text(f'#!/bin/sh\nexec python3 -u {folder}/meet.py torchrun "$@"\n')
    (programs / "torchrun").chmod(0o755)
    shutil.copy(HERE / "meet.py", folder)
    (folder / "paddle" / "distributed").mkdir(parents=True)
    (folder / "paddle" / "distributed" / "launch.py").write_text("import meet\nmeet.main(['paddle'])\n")
    (folder / "mnist_with_summaries.py").write_text("import meet\nmeet.main(['tensorflow'])\n")
    mnist = folder / "horovod" / "examples" / "pytorch" / "pytorch_mnist.py"
    mnist.parent.mkdir(parents=True)
    mnist.write_text("import meet\nmeet.main(['mpi'])\n")


def map_images(server, folder):
    def image(name, *more):
        server.run("image", "map", name, "--host", "--mount", f"{folder}:{folder}:ro", "--env",
                   f"PATH={folder}/bin:{os.environ['PATH']}", "--env", f"PYTHONPATH={folder}", *more)

    def entry(framework):
        return ("--", "python3", "-u", f"{folder}/meet.py", framework)
    image("kubeflow/pytorch-dist-mnist:latest", *entry("pytorch"))
    image("docker.io/pytorch/pytorch:*")
    image("docker.io/hello-world", "--", "echo", "Hello from Docker!")
    image("docker.io/tensorflow/tensorflow:*")
    image("gcr.io/kubeflow-ci/tf-mnist-with-summaries:1.0", "--mount", f"{folder}:/var/tf_mnist:ro")
    image("docker.io/kubeflow/xgboost-dist-iris:latest", *entry("xgboost"))
    image("docker.io/paddlepaddle/paddle:*")
    image("docker.io/kubeflow/jaxjob-dist-spmd-mnist:latest", *entry("jax"))
    image("horovod/horovod:*", "--mount", f"{folder}/horovod:/horovod:ro")
