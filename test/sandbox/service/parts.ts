import type { Credentials } from './credentials.ts'
import type { Documents } from './data/documents.ts'
import type { State } from './data/state.ts'
import type { Deliverer } from './events/deliveries.ts'
import type { ServiceOptions } from './options.ts'
import type { Presigner } from './presign.ts'
import type { Shape } from './shapes/shape.ts'

/** What the routes work with. */
export interface Parts {
  state: State
  credentials: Credentials
  presigner: Presigner
  documents: Documents
  deliverer: Deliverer
  options: ServiceOptions
  shape: Shape
  now: () => number
  /** How often an artifact was asked for while it was in the making. */
  pending: Map<string, number>
  /** Filled in once the servers listen. */
  addresses: { readonly artifactUrl: string }
}
