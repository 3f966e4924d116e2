import type { ServerPlugin } from './plugin.ts'
import type { RestOfPaths } from './app.ts'
import { problems } from './contract/answers.ts'
import { headersOf } from './contract/components.ts'
import type { InputParameter, PathOperation } from './contract/openapi.ts'

/** What receives deliveries of the service. */
interface Receiver {
  /** Answers a request at an endpoint, its body unread; false for any other. */
  readonly handle: RestOfPaths
  readonly paths: readonly string[]
}

/** Makes the routes of the endpoints on this listener. */
export function deliveryRoutes({ handle, paths }: Receiver): ServerPlugin {
  return (app, _tools, done) => {
    const taken = app.onUnreadBody(handle)
    for (const url of paths) {
      app.post(url, { schema: DELIVERY_CONTRACT, config: { takesAnyQuery: true }, ...taken })
      app.options(url, { schema: HANDSHAKE_CONTRACT, config: { takesAnyQuery: true }, ...taken })
    }
    app.answerRest(handle)
    done()
  }
}

const TEXT = { type: 'string' }
const DELIVERY_TAGS = ['Webhooks']
const SIGNED: readonly InputParameter[] = [
  ['webhook-id', 'Id of the delivery; a repeated one is stored once.'],
  ['webhook-timestamp', 'When it was sent, Unix seconds.'],
].map(([name = '', description = '']) => ({ name, in: 'header', description, schema: TEXT }))

/** An endpoint that receives deliveries of the service. */
const DELIVERY_CONTRACT: PathOperation = {
  summary: 'A signed delivery of the service',
  description: 'Verified as it came, answered when it is on disk.',
  tags: DELIVERY_TAGS,
  parameters: SIGNED,
  requestBody: {
    description: 'An event, at most 256 KiB.',
    required: true,
    content: { 'application/json': { schema: {} } },
  },
  responses: {
    200: {
      description: 'Stored before, or ignored.',
      headers: headersOf('Cache-Control'),
    },
    202: { description: 'Stored.', headers: headersOf('Cache-Control') },
    ...problems('message', 401, 408, 413, 415, 503),
  },
  security: [{ delivery: [] }],
}

/** What it answers before deliveries come. */
const HANDSHAKE_CONTRACT: PathOperation = {
  summary: 'The handshake of CloudEvents web hooks',
  tags: DELIVERY_TAGS,
  parameters: [
    {
      name: 'WebHook-Request-Origin',
      in: 'header',
      description: 'The sender that asks.',
      schema: TEXT,
    },
  ],
  responses: {
    200: {
      description: 'One of `webhooks.allowedOrigins`.',
      headers: headersOf('Cache-Control', 'Allow', 'WebHook-Allowed-Origin', 'WebHook-Allowed-Rate'),
    },
    ...problems('message', 503),
  },
}
