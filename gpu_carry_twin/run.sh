cd "$(dirname "$0")"
export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4
mkdir -p out
begun=$SECONDS
{ nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; nvidia-smi topo -m | head -4
python3 -c 'import torch; print("torch", torch.__version__, "cuda", torch.version.cuda, "nccl", torch.cuda.nccl.version(), torch.cuda.device_count())'; } > out/versions.txt 2>&1
cat out/versions.txt
one() {  # lab, name of log, options
  lab=$1; shift
  echo "== $lab $* (at $((SECONDS-begun)) s)"
  timeout 90 python3 -m torch.distributed.run --standalone --nproc-per-node 2 labs/$lab/twin.py "$@" --out out/$lab > log.txt 2>&1 || { echo "FAILED $?"; grep -v -i warning log.txt | grep -m3 -A12 Traceback; tail -4 log.txt; }
  grep "ms a step" log.txt | tee -a out/steps.txt
  tar -cf $OUT/twin.tar out
}
one 04_fsdp --prefetch 1 --steps 2
one 01_data_parallel --sums bucketed --steps 2
one 02_tensor_parallel --sums hidden --steps 2
one 04_fsdp --prefetch 0 --steps 1
one 04_fsdp --sync --steps 1
one 04_fsdp --sequences 1 --steps 1
one 01_data_parallel --sums flat --steps 1
one 01_data_parallel --sums naive --steps 1
one 02_tensor_parallel --sums hidden --connections 8 --steps 1
one 02_tensor_parallel --sums awaited --steps 1
one 02_tensor_parallel --sums forgotten --steps 1
one 02_tensor_parallel --width 128 --steps 1
one 01_data_parallel --sums sharded --steps 1
one 04_fsdp --reshard 0 --steps 1
find out -name '*.gz' | xargs ls -la
echo total $((SECONDS-begun)) s
