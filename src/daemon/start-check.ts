import { withAddress } from '../server/listen.ts'
import type { Config } from '../config/schema.ts'
import { readCertificate } from '../base/certificate.ts'
import { tryWebhooks } from '../webhooks/webhooks.ts'

/**
 * Tries everything that a start needs beside the data folder: certificates, webhook secrets, and both addresses at the same
 * time. A start that fails here has changed no database, so the version before still opens them. Throws `config`.
 */
export async function tryStart(config: Config, now: () => number): Promise<void> {
  const { certFile, keyFile } = config.server
  if (certFile !== null && keyFile !== null) readCertificate({ certFile, keyFile }, 'server')
  await withAddress(config.server, () => tryWebhooks(config, now))
}
