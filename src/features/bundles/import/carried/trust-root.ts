import { MirrorError } from '../../../../base/errors.ts'
import { carriedMember } from '../../format/carried.ts'
import { LARGEST_TRUST, TRUST_HEADER } from '../../format/trust-root.ts'
import type { Writes } from '../../../../store/writes.ts'
import type { Bundle } from '../open.ts'
import { readCarriedLines } from './lines.ts'

/** Largest content of the member: each character may be escaped. */
const MAX_BYTES = LARGEST_TRUST * 6 + TRUST_HEADER.length

type WithTrust = readonly Pick<Bundle, 'manifest' | 'stream' | 'key'>[]

/** Stores the trust root of the newest bundle that has one, inside the transaction that publishes. Throws `bundle`. */
export async function applyTrustRoot(bundles: WithTrust, { catalog }: Pick<Writes, 'catalog'>): Promise<void> {
  const texts = await otherTrustRoot(bundles, { catalog })
  if (texts !== null) catalog.putCarriedTrust(texts)
}

/**
 * Reads the trust root of the newest bundle that has one; null: there is none, or it is stored already. A bundle without a trusted
 * signature says nothing about whom to trust. Throws `bundle`.
 */
export async function otherTrustRoot(
  bundles: WithTrust,
  { catalog }: Pick<Writes, 'catalog'>,
): Promise<string[] | null> {
  const bundle = bundles.findLast(({ manifest, key }) => key !== null && carriedMember(manifest, 'trust-root') !== null)
  const name = bundle === undefined ? null : carriedMember(bundle.manifest, 'trust-root')
  if (bundle === undefined || name === null) return null
  const lines = await readCarriedLines(bundle, name, { header: TRUST_HEADER, maxBytes: MAX_BYTES })
  const texts = lines.map(({ value, place }) => {
    if (typeof value === 'string') return value
    throw new MirrorError('bundle', `${place} is not the text of a trust root`)
  })
  return JSON.stringify(texts) === JSON.stringify(catalog.listCarriedTrust()) ? null : texts
}
