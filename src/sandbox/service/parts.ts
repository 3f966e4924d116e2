import type { Credentials } from './credentials.ts'
import type { ServiceOptions } from './options.ts'
import type { Presigner } from './presign.ts'
import type { Shape } from './shape.ts'
import type { State } from './state.ts'
import type { Deliverer } from './deliveries.ts'

/** What the routes work with. */
export interface Parts {
  state: State
  credentials: Credentials
  presigner: Presigner
  deliverer: Deliverer
  options: ServiceOptions
  shape: Shape
  now: () => number
}
