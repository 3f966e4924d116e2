import { integerField, shape, textField } from '../../../../base/json/shapes.ts'
import { MirrorError, messageOf } from '../../../../base/errors.ts'
import { type ObjectStore, readObject } from '../../objects/object-store.ts'
import { GENERATION_FORMAT } from './generation.ts'
import { FORMAT_KEY } from './object-names.ts'
import { refuseGeneration } from './refusals.ts'
import { storeDecided } from '../uploads.ts'

interface FleetFormat {
  format: number
  fleet: string
}

const fleetFormat = shape<FleetFormat>({
  format: integerField(1),
  fleet: textField(/^[\da-f]{32}$/, "a fleet's identity"),
})

const MAX_BYTES = 4096

/**
 * Returns the identity of the fleet on the store: 32 hex digits. `proposed`: 16 bytes that become it where there is none
 * yet. Throws `fleet` with the reason `malformed` for a format that this program does not know.
 */
export async function readFleetId(store: ObjectStore, proposed: Buffer): Promise<string> {
  const found = await fetchFleetId(store)
  if (found !== null) return found
  const fleet = proposed.toString('hex')
  const text = `${JSON.stringify({ format: GENERATION_FORMAT, fleet })}\n`
  if (await storeDecided(store, FORMAT_KEY, Buffer.from(text))) return fleet
  return (await fetchFleetId(store)) ?? fleet
}

/** Returns the identity of the fleet on the store; null: it has none yet. Throws as `readFleetId`. */
export async function fetchFleetId(store: ObjectStore): Promise<string | null> {
  const found = await readObject(store, FORMAT_KEY, MAX_BYTES)
  if (found === null) return null
  let read: FleetFormat
  try {
    read = fleetFormat(JSON.parse(found.bytes.toString('utf8')), `${FORMAT_KEY}:`)
    if (read.format > GENERATION_FORMAT)
      throw new MirrorError('bundle', `it has format ${read.format}: update Patchmirror on this node`)
  } catch (error) {
    throw refuseGeneration('malformed', `${FORMAT_KEY} on ${store.url}: ${messageOf(error)}`, {
      cause: error,
    })
  }
  return read.fleet
}
