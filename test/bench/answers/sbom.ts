import { PACKAGES, TARGETS, patchedName } from '../../sandbox/feed/vocabulary.ts'

const TYPES = {
  alpine: 'apk/alpine',
  debian: 'deb/debian',
  ubuntu: 'deb/ubuntu',
  npm: 'npm',
  pypi: 'pypi',
  maven: 'maven',
}

/** Package URLs without a version: one package of each kind that the stand-in has records of, hundreds about each. */
function knownPackages(): string[] {
  const feeds = [...new Set(TARGETS.map(({ feed }) => feed))]
  return feeds.map((feed) => {
    const patched = patchedName(feed, PACKAGES[feed][0] ?? '').replace(':', '/')
    return `pkg:${TYPES[feed]}/${patched.split('/').map(encodeURIComponent).join('/')}`
  })
}

/**
 * Makes a CycloneDX SBOM of so many components: the known packages, in a version that not all of their records affect, and
 * libraries without a record, as most are.
 */
export function makeSbom(size: number): string {
  const known = knownPackages()
  const components = Array.from({ length: size }, (_, i) => {
    const version = `${i < known.length ? 6 : 1}.${i % 31}.${i % 17}`
    const name = known[i] ?? `pkg:npm/library-${i}`
    return { type: 'library', name: `component-${i}`, version, purl: `${name}@${version}` }
  })
  return JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', components })
}
