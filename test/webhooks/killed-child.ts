import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createReceiver } from '../../src/webhooks/receive/receiver.ts'
import { startInboxThread } from '../../src/webhooks/inbox/thread.ts'
import { createSigningSecret, createVerifier } from '../../src/webhooks/receive/signature.ts'
import { SECRET } from './signing.ts'

/** Receives webhooks, and ends as by a power cut between the commit and the answer: `killed-child.ts <data folder>`. */

const [, , dataDir = ''] = process.argv
const onFailed = (message: string): void => void process.stderr.write(message)
const inbox = startInboxThread({ dataDir, keepMs: 600_000, onFailed })
const secrets = [createSigningSecret('settings-1', SECRET)]
const receiver = createReceiver({
  endpoints: [{ name: 'default', path: '/-/webhooks' }],
  inbox: {
    async receive(delivery) {
      await inbox.receive(delivery)
      process.kill(process.pid, 'SIGKILL')
      return new Promise(() => undefined)
    },
  },
  verify: createVerifier({
    secrets: () => secrets,
    dialect: 'any',
    toleranceSeconds: 300,
    now: Date.now,
  }),
  isSetUp: () => true,
  isWanted: () => true,
  allowedOrigins: [],
  maxBytes: 4096,
  counters: [],
  followers: [],
  now: Date.now,
  log: null,
})
const server = createServer((request, response) => void receiver.handle(request, response))
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
})
