import { expect } from 'vitest'
import type { EventTarget } from '../../src/base/domain/image-reference.ts'
import type { ServiceOptions } from '../sandbox/service/options.ts'
import type { Service } from '../sandbox/service/service.ts'
import type { Run } from '../../src/store/runs/runs.ts'
import type { CatalogBench } from '../support/catalog/mirror.ts'
import { SMALL, mirrored } from './catalog/fixtures.ts'

/** A service with enough images to distinguish a refresh of one of them from a sync. */
export const WIDE: ServiceOptions = { ...SMALL, images: 5, tags: 10 }

/** A target that names nothing but what is given. */
export function targetOf(named: Partial<EventTarget>): EventTarget {
  return { repository: null, tag: null, digest: null, arch: null, subject: null, ...named }
}

/** What the service's event of a tag names. */
export function announced(service: Service, id: string): EventTarget {
  const tag = service.read('tags', id) as {
    name: string
    digest: string
    image: { repository: string }
  }
  const { repository } = tag.image
  const subject = `cr.example.com/${repository}:${tag.name}`
  return targetOf({ repository, tag: tag.name, digest: tag.digest, arch: 'amd64', subject })
}

/** One refresh, as an event causes it. */
export function refresh(made: Pick<CatalogBench, 'run'>, ...targets: EventTarget[]): Promise<Run> {
  return made.run('catalog', { kind: 'refresh', trigger: 'webhook', targets })
}

/** A mirror of a service that has 12 tags, with a guard that such a service can trip. */
export function guarded(): Promise<CatalogBench> {
  const env = {
    PATCHMIRROR_GUARD_LIMIT: 'removed=10% and 5',
  }
  return mirrored({ ...SMALL, tickets: 60, tags: 12 }, env)
}

/** Checks that one more sync changes nothing: the refreshes did all that it would have done. */
export async function expectNothingLeft(made: CatalogBench): Promise<void> {
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', message: 'nothing changed' })
}
