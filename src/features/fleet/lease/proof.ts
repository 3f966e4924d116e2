import { MirrorError } from '../../../base/errors.ts'
import { FleetError, type ObjectStore } from '../objects/object-store.ts'
import { type ProbeCheck, probeStore } from '../objects/probe.ts'

/** How long a store that failed is not tried again, milliseconds. */
const REFUSED_MS = 300_000

/**
 * Reports whether a store was tried and can keep a lease; false while it is being tried. Throws `FleetError` when it failed, with
 * what to do.
 */
export type LeaseProof = () => boolean

/** Creates the proof of a store, which is tried when it is first asked for. `clock`: milliseconds that are never set. */
export function createLeaseProof(store: ObjectStore, clock: () => number): LeaseProof {
  let isTrying = false
  let isProven = false
  let failed: { readonly error: Error; readonly until: number } | null = null
  const attempt = async (): Promise<void> => {
    isTrying = true
    try {
      const { lease, checks } = await probeStore(store, { rounds: 1 })
      isProven = lease
      const reasonsOf = (which: ProbeCheck['state']): string =>
        checks
          .filter(({ state }) => state === which)
          .map(({ name, found }) => `${name}: ${found}`)
          .join('; ')
      const refused = reasonsOf('failed')
      if (refused !== '') failed = { error: refusalOf(store, refused), until: clock() + REFUSED_MS }
      else if (!lease) failed = { error: silenceOf(store, reasonsOf('unknown')), until: clock() }
    } catch (error) {
      if (!(error instanceof MirrorError)) throw error
      failed = { error, until: clock() }
    } finally {
      isTrying = false
    }
  }
  return () => {
    if (isProven) return true
    const last = failed
    if (!isTrying && (last === null || clock() >= last.until)) {
      failed = null
      void attempt()
    }
    if (last !== null) throw last.error
    return false
  }
}

function silenceOf({ url }: ObjectStore, reasons: string): FleetError {
  return new FleetError(
    'unknown',
    `fleet.url: ${url} did not answer while it was tried (${reasons}), so this mirror only follows for now; it is tried again at once`,
  )
}

function refusalOf({ url }: ObjectStore, reasons: string): FleetError {
  return new FleetError(
    'refused',
    `fleet.url: ${url} cannot decide which mirror leads (${reasons}), so this mirror only follows. Use another store, or set ` +
      'fleet.role: sole-writer on one mirror, fleet.role: reader on all others; see "patchmirror fleet check".',
  )
}
