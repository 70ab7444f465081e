/** A Python program for the sandbox: reads dpkg's records, prints progress, writes a report in Markdown. */
export const REPORT_JOB = `
import collections, sys, time

source, target = sys.argv[1:]
started = time.time()
packages = []
fields = {}
with open(source, encoding="utf-8", errors="replace") as file:
    for line in file:
        if line == "\\n":
            if fields:
                packages.append(fields)
            fields = {}
        elif not line[0].isspace() and ":" in line:
            key, value = line.split(":", 1)
            fields[key] = value.strip()
        if len(packages) % 200 == 0 and packages and not fields:
            print(f"{len(packages)} records read", flush=True)
if fields:
    packages.append(fields)

installed = [p for p in packages if p.get("Status", "").endswith("installed")]
size = collections.Counter()
for p in installed:
    size[p.get("Section", "none")] += int(p.get("Installed-Size", 0))
largest = sorted(installed, key=lambda p: -int(p.get("Installed-Size", 0)))[:10]

with open(target, "w", encoding="utf-8") as out:
    out.write("# Installed packages\\n\\n")
    out.write(f"{len(installed)} packages, {sum(size.values()) / 1024:.0f} MiB\\n\\n")
    out.write("## Largest\\n\\n")
    for p in largest:
        out.write(f"- {p['Package']} {p.get('Version', '')}: {int(p.get('Installed-Size', 0)) / 1024:.1f} MiB\\n")
    out.write("\\n## By section\\n\\n")
    for section, kib in size.most_common():
        out.write(f"- {section}: {kib / 1024:.1f} MiB\\n")
print(f"{len(installed)} packages in {time.time() - started:.2f} s", flush=True)
`;
