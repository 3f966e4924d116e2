/** What `--help` of the sandbox prints: each option, its default and what it is for. */
export const USAGE = `usage: npm run sandbox -- [options]

A stand-in for the service, for trying things out: made-up advisories, images and packages that change when told to.
It keeps everything in memory. What it says at start are the URLs, the credentials and the calls that steer it.

Where
  --host H             address to listen on (127.0.0.1)
  --port N             port of the public feeds and of /v1 and /v3 (8090; 0: any free one). The package catalog, the
                       artifacts and the identity surface listen on the three ports after it
What it has
  --records N          OSV records (500)
  --osv-zip FILE       records of an archive instead, one JSON document each member
  --osv-index FILE     the index that belongs to --osv-zip; made from its records when not given
  --malformed          every sixth record is without its schema_version, so that scanners drop it
  --tags N             image tags, --packages N and --tickets N likewise
  --large-sboms N      so many SBOMs of 20 MB (0)
  --seed N             another number, other data; the same number, the same data (1)
How it behaves
  --live SECONDS       something changes so often (0: only when told to)
  --no-ranges          it answers Range requests with the whole archive
  --shape NAME         how it reads what the contract leaves open: wire, other, link, items, nested or camel (wire)
  --vary JSON          other forms of some parts of the shape: '{"records":{"ids":"integer"},"lists":{"largestPage":3}}'
  --dialect NAME       how deliveries are signed: standard or vendor (standard)
  --webhook-secret S   the secret of each new webhook subscription (a random one each)
  --keep-requests N    requests that it remembers for /-/sandbox/requests (20000)
  --help               this page
`
