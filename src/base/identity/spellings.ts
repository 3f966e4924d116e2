/**
 * How package URLs name ecosystems. One table a kind; what osv.dev itself writes stands first, and is what is written here.
 */

/** Ecosystems by type and namespace, where the namespace is the maker's: as osv.dev's own package URLs have them. */
const MAKERS: Readonly<Record<string, string>> = {
  'apk/alpaquita': 'Alpaquita',
  'apk/alpine': 'Alpine',
  'apk/bellsoft-hardened-containers': 'BellSoft Hardened Containers',
  'apk/chainguard': 'Chainguard',
  'apk/minimos': 'MinimOS',
  'apk/wolfi': 'Wolfi',
  'deb/debian': 'Debian',
  'deb/echo': 'Echo',
  'deb/ubuntu': 'Ubuntu',
  'rpm/almalinux': 'AlmaLinux',
  'rpm/azure-linux': 'Azure Linux',
  'rpm/mageia': 'Mageia',
  'rpm/openeuler': 'openEuler',
  'rpm/opensuse': 'openSUSE',
  'rpm/redhat': 'Red Hat',
  'rpm/rocky-linux': 'Rocky Linux',
  'rpm/suse': 'SUSE',
}

/** Other names of the same makers. The library of package URLs writes namespaces in lower case. */
const OTHER_MAKERS: Readonly<Record<string, string>> = {
  // osv.dev's parser: the lineages of Docker Hardened Images
  'apk/dhi': 'Docker Hardened Images',
  // its records' own, which osv.dev does not write
  'apk/cleanstart': 'CleanStart',
  'deb/dhi': 'Docker Hardened Images',
  // `ID` of /etc/os-release, which syft, cdxgen and Trivy write
  'rpm/alma': 'AlmaLinux',
  'rpm/azurelinux': 'Azure Linux',
  'rpm/mariner': 'Azure Linux',
  'rpm/opensuse-leap': 'openSUSE',
  'rpm/opensuse-leap-micro': 'openSUSE',
  'rpm/opensuse-microos': 'openSUSE',
  'rpm/opensuse-tumbleweed': 'openSUSE',
  'rpm/photon': 'Photon OS',
  'rpm/rhel': 'Red Hat',
  'rpm/rocky': 'Rocky Linux',
  'rpm/sl-micro': 'SUSE',
  'rpm/sle': 'SUSE',
  'rpm/sle-micro': 'SUSE',
  'rpm/sle_hpc': 'SUSE',
  'rpm/sled': 'SUSE',
  'rpm/sles': 'SUSE',
  'rpm/sles_sap': 'SUSE',
  // names of families in Trivy
  'rpm/azure': 'Azure Linux',
  'rpm/cbl-mariner': 'Azure Linux',
  'rpm/opensuse.leap': 'openSUSE',
  'rpm/opensuse.tumbleweed': 'openSUSE',
  'rpm/slem': 'SUSE',
  'rpm/suse linux enterprise micro': 'SUSE',
  'rpm/suse linux enterprise server': 'SUSE',
  // seen in SBOMs of other tools
  'rpm/leap': 'openSUSE',
  'rpm/photon os': 'Photon OS',
  'rpm/red-hat': 'Red Hat',
  'rpm/rockylinux': 'Rocky Linux',
  'rpm/tumbleweed': 'openSUSE',
  // rebuilds of Red Hat Enterprise Linux, which Trivy and Grype judge by its advisories as well
  'rpm/centos': 'Red Hat',
}

/** Distributions that no ecosystem of the OSV schema is about: another one's records are not theirs. */
const UNRECORDED: Readonly<Record<string, string>> = {
  'apk/postmarketos': 'postmarketOS',
  'deb/devuan': 'Devuan',
  'deb/kali': 'Kali Linux',
  'deb/linuxmint': 'Linux Mint',
  'deb/raspbian': 'Raspbian',
  'rpm/amazon': 'Amazon Linux',
  'rpm/amazonlinux': 'Amazon Linux',
  'rpm/amzn': 'Amazon Linux',
  'rpm/fedora': 'Fedora',
  'rpm/ol': 'Oracle Linux',
  'rpm/oracle': 'Oracle Linux',
  'rpm/oraclelinux': 'Oracle Linux',
}

/** Ecosystems by type alone, and what joins a namespace and a name there; null: a namespace is not known there. */
const TYPES: Readonly<Record<string, { ecosystem: string; joint: string | null }>> = {
  bioconductor: { ecosystem: 'Bioconductor', joint: null },
  bitnami: { ecosystem: 'Bitnami', joint: null },
  brew: { ecosystem: 'Homebrew', joint: null },
  cargo: { ecosystem: 'crates.io', joint: null },
  composer: { ecosystem: 'Packagist', joint: '/' },
  conan: { ecosystem: 'ConanCenter', joint: null },
  cran: { ecosystem: 'CRAN', joint: null },
  dhi: { ecosystem: 'Docker Hardened Images', joint: null },
  gem: { ecosystem: 'RubyGems', joint: null },
  generic: { ecosystem: 'OSS-Fuzz', joint: null },
  githubactions: { ecosystem: 'GitHub Actions', joint: '/' },
  golang: { ecosystem: 'Go', joint: '/' },
  hackage: { ecosystem: 'Hackage', joint: null },
  hex: { ecosystem: 'Hex', joint: '/' },
  julia: { ecosystem: 'Julia', joint: null },
  maven: { ecosystem: 'Maven', joint: ':' },
  npm: { ecosystem: 'npm', joint: '/' },
  nuget: { ecosystem: 'NuGet', joint: null },
  opam: { ecosystem: 'opam', joint: null },
  pub: { ecosystem: 'Pub', joint: null },
  pypi: { ecosystem: 'PyPI', joint: null },
  swift: { ecosystem: 'SwiftURL', joint: '/' },
  vcpkg: { ecosystem: 'vcpkg', joint: null },
  'vscode-extension': { ecosystem: 'VSCode', joint: '/' },
}

/** Other names of the same types. */
const OTHER_TYPES: Readonly<Record<string, string>> = {
  // ecosystems of GitHub's dependency graph (`MAVEN`, `PIP`), and of its advisories (`actions`, `erlang`, `go`)
  actions: 'githubactions',
  erlang: 'hex',
  go: 'golang',
  pip: 'pypi',
  rubygems: 'gem',
  rust: 'cargo',
  // Actions, as syft and cdxgen name the repository of one
  github: 'githubactions',
  // plugins of build tools
  gradle: 'maven',
  // names of registries and tools, seen in SBOMs of other tools
  crates: 'cargo',
  homebrew: 'brew',
  'crates.io': 'cargo',
  packagist: 'composer',
  pnpm: 'npm',
  yarn: 'npm',
}

/** Types that were a maker's: old versions of syft wrote `pkg:alpine/…` for `pkg:apk/alpine/…`. */
const MAKER_TYPES: Readonly<Record<string, string>> = { alpine: 'apk/alpine' }

const BY_MAKER = new Map(Object.entries({ ...MAKERS, ...OTHER_MAKERS }))
const NO_RECORDS = new Map(Object.entries(UNRECORDED))
const BY_TYPE = new Map(Object.entries(TYPES))
const SAME_TYPE = new Map(Object.entries(OTHER_TYPES))
const MAKER_TYPE = new Map(Object.entries(MAKER_TYPES))

/** What a type and a namespace stand for. */
type Spelled =
  | { readonly kind: 'maker'; readonly ecosystem: string }
  | { readonly kind: 'unrecorded'; readonly title: string }
  | { readonly kind: 'type'; readonly ecosystem: string; readonly joint: string | null }

/** Returns what a type and a namespace, '' for none, stand for; null for nothing that is known here. */
export function spelled(type: string, namespace: string): Spelled | null {
  const known = sameType(type)
  const path = MAKER_TYPE.get(known) ?? `${known}/${namespace.toLowerCase()}`
  const maker = BY_MAKER.get(path)
  if (maker !== undefined) return { kind: 'maker', ecosystem: maker }
  const title = NO_RECORDS.get(path)
  if (title !== undefined) return { kind: 'unrecorded', title }
  const own = BY_TYPE.get(known)
  return own === undefined ? null : { kind: 'type', ...own }
}

/** Returns the type that package URLs have for what some tools name otherwise. */
export function sameType(type: string): string {
  return SAME_TYPE.get(type) ?? type
}

/** Types of the packages of distributions, which a release and a source package belong to. */
export function isSystemType(type: string): boolean {
  return type === 'apk' || type === 'deb' || type === 'rpm' || MAKER_TYPE.has(type)
}

/** Returns the type and the namespaces by which each maker is known, those that OSV has no records of as well. */
export function eachMaker(): {
  type: string
  namespace: string
  name: string
  recorded: boolean
}[] {
  const entryOf = (recorded: boolean) => (entry: readonly [string, string]) => {
    const path = entry[0]
    const slash = path.indexOf('/')
    return {
      type: path.slice(0, slash),
      namespace: path.slice(slash + 1),
      name: entry[1],
      recorded,
    }
  }
  return [...[...BY_MAKER].map(entryOf(true)), ...[...NO_RECORDS].map(entryOf(false))]
}

/** Read, but not written: osv.dev writes no package URLs of these ecosystems, and neither do their records. */
const UNWRITTEN = new Set(['bioconductor', 'githubactions', 'vcpkg', 'vscode-extension'])

/** How the package URL of an ecosystem is written. */
interface PurlKind {
  readonly type: string
  /** The namespace of all its packages. */
  readonly maker: string | undefined
  /** What joins a namespace and a name in OSV's names. */
  readonly joint: string | null
}

/** Returns how the package URLs of each ecosystem are written. */
export function purlKinds(): ReadonlyMap<string, PurlKind> {
  const kinds = new Map<string, PurlKind>()
  for (const [type, { ecosystem, joint }] of BY_TYPE)
    if (!UNWRITTEN.has(type)) kinds.set(ecosystem, { type, maker: undefined, joint })
  for (const [path, ecosystem] of Object.entries(MAKERS)) {
    const slash = path.indexOf('/')
    kinds.set(ecosystem, { type: path.slice(0, slash), maker: path.slice(slash + 1), joint: null })
  }
  return kinds
}
