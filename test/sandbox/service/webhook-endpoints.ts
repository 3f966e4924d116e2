import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished } from 'vitest'
import { type Sandbox, type SandboxOptions, createSandbox } from '../server.ts'
import type { ServiceOptions } from './options.ts'
import { EVENT_TYPE } from './routes/webhooks.ts'
import { asAdmin } from './asking.ts'

/** What an endpoint got. */
export interface Received {
  headers: IncomingMessage['headers']
  body: string
}

export const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

/** An endpoint of its own on loopback. `answer` is called with the number of each request, from 1. */
export async function endpoint(
  answer: (response: ServerResponse, number: number) => unknown = (response) => response.end(),
): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push({ headers: request.headers, body })
      answer(response, received.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, received }
}

/** A sandbox that retries quickly, closed when the test ends. */
export async function delivering(service: ServiceOptions = {}, options: SandboxOptions = {}): Promise<Sandbox> {
  const quick = { webhookSecret: SECRET, retryDelaysMs: [1, 1, 1] }
  const sandbox = await createSandbox({ records: 5, ...options, service: { ...quick, ...service } })
  onTestFinished(() => sandbox.close())
  return sandbox
}

/** Subscribes an endpoint; returns the subscription's id. */
export async function subscribe(sandbox: Sandbox, url: string, type = EVENT_TYPE): Promise<string> {
  const body = { url, event_types: [type] }
  const { status, value } = await asAdmin(sandbox, '/v3/settings/webhooks', {
    method: 'POST',
    body,
  })
  expect(status).toBe(201)
  expect(value['secret']).toBe(SECRET)
  return String(value['id'])
}
