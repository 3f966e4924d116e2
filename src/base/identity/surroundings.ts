import type { Surroundings } from './identity.ts'

/** What an SBOM, and who gives it, say about the release of its components. */
interface NamedSystems {
  /** The operating systems that the SBOM names. */
  readonly systems: readonly string[]
  /** The distribution that the user names; null: none. */
  readonly option: string | null
}

/** Returns what is known beside the components: the one system of the SBOM, else what the user names. */
export function surroundingsOf({ systems, option }: NamedSystems): Surroundings {
  const [system] = systems
  if (system !== undefined && systems.length === 1) return { distribution: { name: system, from: 'sbom' } }
  return { distribution: option === null ? null : { name: option, from: 'option' } }
}
