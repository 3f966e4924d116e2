import type { IncomingMessage } from 'node:http'
import type { Config } from '../../config/schema.ts'
import type { PinnedReads } from '../../store/reads.ts'
import { createTrust } from '../http/client-address.ts'
import { arrivalOf, baseUrl } from '../http/forwarded.ts'
import type { ServerLog } from '../http/problems.ts'
import { PRIVATE_CACHING, createHeads } from '../http/response.ts'
import { createAccess } from './access.ts'
import { createLinkSecrets } from './link-secrets.ts'
import { createLinks } from './signed-links.ts'

/** What it is made from. */
interface PrivateSideOptions {
  readonly reads: PinnedReads
  /** Of its keys only the hashes are kept. */
  readonly config: Pick<Config, 'server'>
  /** The address that the server is bound to; null while it is not. */
  readonly listeningOn: () => string | null
  readonly log: ServerLog | null
  readonly now: () => number
}

/** What opens the private side of the API. */
export type PrivateSide = ReturnType<typeof createPrivateSide>

/** Puts keys and links together. Throws `config` for keys or proxies that cannot be. */
export function createPrivateSide({ reads, config, listeningOn, log, now }: PrivateSideOptions) {
  const settings = config.server
  const { publicUrl } = settings
  const trusted = createTrust(settings.trustProxy)
  const own = reads.live.secrets.readSecret('links')
  return {
    /** Who may read; for pages that show more to those who may. */
    access: createAccess({ settings, reads, trusted, listeningOn, log, now }),
    links: createLinks(createLinkSecrets(settings.linkSecretFile, own, { log }), now),
    /** Head fields that keep shared caches away from private answers. */
    heads: createHeads(PRIVATE_CACHING),
    /** Returns the URL under which a client reaches the mirror, without a slash at the end. */
    baseUrl: (request: IncomingMessage): string => baseUrl({ publicUrl, trusted }, arrivalOf(request)),
  }
}
