import { remember } from '../text.ts'
import { findEcosystem } from '../versions/ecosystems.ts'
import { coversRelease, isReleased } from './releases.ts'

/** Ecosystems that are remembered, of queries and of records for each: each element of `affected` asks, and mostly the same. */
const REMEMBERED = { results: 100, characters: 200 }
const meantBy = remember((asked) => remember((recorded) => decide(recorded, asked), REMEMBERED), REMEMBERED)

/**
 * Whether a package of a record's ecosystem is meant by a query for another: the very same, the same without its release
 * (`Debian` asks for all of `Debian:…`), and the same release in other words. A record of a distribution without a release is
 * about each of them. Ubuntu's is meant without `:Pro` and `:LTS`, as osv.dev has it. A vendor's is meant by its vendor, and
 * by its vendor and base.
 */
export function isMeant(recorded: string, asked: string): boolean {
  return recorded === asked || meantBy(asked)(recorded)
}

/**
 * Whether records of ecosystems are about the release that is asked for: of it, or of a distribution or vendor without any
 * release. Where others name releases, one without a release does not say that this one was looked at.
 */
export function coversAsked(recorded: readonly string[], asked: string): boolean {
  const wanted = partsOf(asked)
  if (wanted.release === '') return true
  const ofBase = recorded.map(partsOf).filter(({ base, vendor }) => base === wanted.base && vendor === wanted.vendor)
  if (ofBase.every(({ release }) => release === '')) return true
  return recorded.some((one) => partsOf(one).release !== '' && isMeant(one, asked))
}

function decide(recorded: string, asked: string): boolean {
  if (recorded.includes('Ubuntu:')) {
    const release = recorded.replaceAll(':LTS', '')
    if (release === asked.replaceAll(':LTS', '')) return true
    if (release.replaceAll(':Pro', '') === asked) return true
  }
  const wanted = partsOf(asked)
  if (wanted.release === '') return recorded.startsWith(`${asked}:`)
  const { base, vendor, release } = partsOf(recorded)
  if (base === null || base !== wanted.base || vendor !== wanted.vendor) return false
  if (!isReleased(base)) return false
  return release === '' || coversRelease(base, release, wanted.release)
}

interface Parts {
  readonly vendor: string
  /** Null: there is none that the OSV schema has. */
  readonly base: string | null
  /** '': none. */
  readonly release: string
}

/** Returns the parts of an ecosystem's name: `Root`, `Debian` and `12` of `Root:Debian:12`. */
function partsOf(name: string): Parts {
  const base = findEcosystem(name)?.base ?? null
  const colon = name.indexOf(':')
  const first = colon < 0 ? name : name.slice(0, colon)
  if (base === null) return { vendor: first, base, release: colon < 0 ? '' : name.slice(colon + 1) }
  const isOwn = first === base
  const rest = isOwn ? name.slice(base.length + 1) : name.slice(colon + 1 + base.length + 1)
  return { vendor: isOwn ? '' : first, base, release: rest }
}
