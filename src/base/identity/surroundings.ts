import type { Surroundings } from './identity.ts'
import { readRelease } from './releases.ts'

/** What an SBOM, and who gives it, say about the release of its components. */
interface NamedSystems {
  /** The operating systems that the SBOM names. */
  readonly systems: readonly string[]
  /** The distribution that the user names; null: none. */
  readonly option: string | null
}

/** Returns what is known beside the components: the one system of the SBOM, else what the user names. */
export function surroundingsOf({ systems, option }: NamedSystems): Surroundings {
  const [system, ...more] = differentSystems(systems)
  if (system !== undefined && more.length === 0) return { distribution: { name: system, from: 'sbom' } }
  return { distribution: option === null ? null : { name: option, from: 'option' } }
}

/** Returns of systems that are of one release, such as `debian-12` and `debian-12.7`, the first one. */
export function differentSystems(systems: readonly string[]): string[] {
  const known = new Map<string, string>()
  for (const system of systems) {
    const release = readRelease(system, null)?.ecosystem ?? system
    if (!known.has(release)) known.set(release, system)
  }
  return [...known.values()]
}
