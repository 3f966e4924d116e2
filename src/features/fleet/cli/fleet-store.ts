import { type KeyTrust, fleetTrust } from '../../bundles/format/keys.ts'
import type { Config } from '../../../config/schema.ts'
import type { ObjectStore } from '../objects/object-store.ts'
import { openObjectStore } from '../objects/open-store.ts'
import type { Generation } from '../generations/format/generation.ts'
import { type GlobalOptions, settings } from '../../../cli/context.ts'
import { closing } from '../../../base/closing.ts'

/** What a command about generations works with. */
interface FleetCommand {
  readonly config: Config
  readonly store: ObjectStore
  readonly trust: KeyTrust
}

/** Returns the mirror that published a generation: its name with the beginning of its identity, or that alone. */
export function mirrorName({ mirror, name }: Pick<Generation, 'mirror' | 'name'>): string {
  const identity = mirror.slice(0, 8)
  return name === undefined ? identity : `${name} (${identity})`
}

/** Opens the store of a fleet for a command, and closes it. Throws `config` where no fleet is set. */
export async function withFleetStore<T>(
  options: GlobalOptions,
  work: (command: FleetCommand) => Promise<T>,
): Promise<T> {
  const { config } = settings(options, false, ['bundle.signingKeys', 'bundle.trustedKeys', 'fleet'])
  const store = await openObjectStore(config.fleet)
  return closing(store, () => work({ config, store, trust: fleetTrust(config, Date.now) }))
}
