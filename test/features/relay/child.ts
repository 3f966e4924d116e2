import { createRelay } from '../../../src/features/relay/relay.ts'
import { createSender, createSigner } from '../../../src/features/relay/sender.ts'
import { loadQuick } from '../../support/limits.ts'
import { createChangeCheck } from '../../../src/store/database/change-check.ts'
import { openInbox, openReader } from '../../../src/store/database/open.ts'
import { createRelayOutbox } from '../../../src/store/webhooks/outbox.ts'
import { readFindings } from '../../../src/store/findings/database.ts'
import { createReads } from '../../../src/store/reads.ts'
import { createTransport } from '../../../src/upstream/http/transport.ts'

/** A relay in a process of its own, to be killed: `child.ts <data folder> <target> <secret>`. */
const [, , dir = '', url = '', secret = ''] = process.argv

const { config } = loadQuick({ env: {}, cwd: dir })
const mirror = openReader(dir)
if (mirror === null) throw new Error('there is no database')
const outboxDb = openInbox(dir)
const transport = createTransport(config.upstream)
const deps = { transport, timeoutMs: 5000, userAgent: 'test', now: Date.now }
const relay = createRelay({
  settings: { ...config.relay, events: ['webhook', 'findings'], targets: [{ name: null, url }], concurrency: 2 },
  outbox: createRelayOutbox(outboxDb),
  changed: createChangeCheck([outboxDb]),
  reads: () => createReads(mirror),
  served: () => Number.POSITIVE_INFINITY,
  findings: (use) => readFindings(dir, use),
  servesFindings: () => true,
  send: createSender({
    chat: { urls: new Set() },
    ...deps,
    sign: createSigner(secret),
  }),
  now: Date.now,
  random: Math.random,
  onFault: (message) => process.stderr.write(`${message}\n`),
  onTurn: () => undefined,
  onUnset: () => undefined,
})
setInterval(() => relay.poll(), 5)
