import type { ServerPlugin } from './plugin.ts'
import type { RestOfPaths } from './app.ts'
import { DELIVERY_CONTRACT, HANDSHAKE_CONTRACT } from './contract/deliveries.ts'

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
