import type { WebhookResponse } from './answers.ts'
import { valuesOf } from './headers.ts'

/**
 * The answer to OPTIONS (CloudEvents web hooks 1.0, section 4): a sender whose name is allow-listed is told that it may
 * send. What it asks to be called back at is never looked at.
 */
export function handshake(
  rawHeaders: readonly string[],
  allowed: readonly string[],
): WebhookResponse {
  const headers = { Allow: 'POST, OPTIONS' }
  const origins = valuesOf(rawHeaders, 'webhook-request-origin')
  const [origin = ''] = origins
  const listed =
    origins.length === 1
      ? allowed.find((one) => one === '*' || one.toLowerCase() === origin.toLowerCase())
      : undefined
  // What is sent back is the setting's text, never the request's.
  return listed === undefined
    ? { status: 200, headers }
    : {
        status: 200,
        headers: { ...headers, 'WebHook-Allowed-Origin': listed, 'WebHook-Allowed-Rate': '*' },
      }
}
