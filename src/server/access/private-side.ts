import type { IncomingMessage } from 'node:http'
import type { Config } from '../../config/schema.ts'
import type { PinnedReads } from '../../store/reads.ts'
import { createTrust } from '../http/client-address.ts'
import { arrivalOf, baseUrl } from '../http/forwarded.ts'
import type { ServerLog } from '../http/problems.ts'
import { PRIVATE_CACHING, type Heads, createHeads } from '../http/response.ts'
import { type Access, createAccess } from './access.ts'
import { createLinkSecrets } from './link-secrets.ts'
import { type Links, createLinks } from './signed-links.ts'

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
export interface PrivateSide {
  /** Who may read; for pages that show more to those who may. */
  readonly access: Access
  readonly links: Links
  /** Head fields that keep shared caches away from private answers. */
  readonly heads: Heads
  /** Returns the URL under which a client reaches the mirror, without a slash at the end. */
  readonly baseUrl: (request: IncomingMessage) => string
}

/** Puts keys and links together. Throws `config` for keys or proxies that cannot be. */
export function createPrivateSide({ reads, config, listeningOn, log, now }: PrivateSideOptions): PrivateSide {
  const settings = config.server
  const { publicUrl } = settings
  const trusted = createTrust(settings.trustProxy)
  const own = reads.live.secrets.readSecret('links')
  return {
    access: createAccess({ settings, reads, trusted, listeningOn, log, now }),
    links: createLinks(createLinkSecrets(settings.linkSecretFile, own, { log }), now),
    heads: createHeads(PRIVATE_CACHING),
    baseUrl: (request) => baseUrl({ publicUrl, trusted }, arrivalOf(request)),
  }
}
