# Prints the benchmarks of formats/trace beside their targets.
/^Benchmark/ {
	for (i = 3; i < NF; i++) {
		if ($(i + 1) == "events/s") rate = $i / 1e6
		if ($(i + 1) == "bytes/event") bytes = $i
	}
	target = ($1 ~ /Write/) ? 5 : 15
	bytes_target = ($1 ~ /stacks=no/) ? "under 12" : "none"
	met = (rate >= target && (bytes < 12 || bytes_target == "none")) ? "met" : "MISSED"
	missed = missed || met == "MISSED"
	printf "%-36s %6.1f M events/s, %5.2f bytes/event   target: %d M events/s, bytes %s   %s\n", $1, rate, bytes, target, bytes_target, met
}

END { exit missed }
