/** What the program is, on its first help page. */
export const DESCRIPTION =
  'Keeps a faithful local copy of a vulnerability-remediation service (OSV records, feeds and, with a credential, ' +
  'the catalog), and serves it under the same paths.'

/** Text that `patchmirror --help` prints below the list of commands. */
export const AFTER = `
OPTIONS
  -c, --config FILE   settings file; also PATCHMIRROR_CONFIG
  -V, --version       print the version; with --json also the formats
  -h, --help          print this page; behind a command its options

EXIT STATUS
  0   complete: what was asked for is done, or equals upstream, verified
  1   failed or not found: nothing was changed, the last good data is served
  2   usage or settings are wrong, or the data folder is in use
  3   partial or not known: not all of it is mirrored here, or not fresh enough
  4   quarantined: see "patchmirror runs", then approve or reject

SETTINGS
  config/default.yaml has all of them; --config FILE overrides it, and the
  environment both: upstream.apiRoot is PATCHMIRROR_UPSTREAM_API_ROOT.
`
