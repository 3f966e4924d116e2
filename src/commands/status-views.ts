import type { ViewsStatus } from '../api/views.ts'
import { timeOf } from './table.ts'

/** A line on one kind of views, as `patchmirror status` prints it. */
export function describeViews({ kind, state, madeAt, making, failing, odd }: ViewsStatus): string {
  const parts = [
    state,
    ...(madeAt === null ? [] : [`made on ${timeOf(Date.parse(madeAt))}`]),
    ...(making ? ['being made'] : []),
    ...(failing ? ['the last try failed: the log says why'] : []),
    ...(odd ? [`${odd} odd ${odd === 1 ? 'record' : 'records'}`] : []),
  ]
  return `views of ${kind}: ${parts.join(', ')}`
}
