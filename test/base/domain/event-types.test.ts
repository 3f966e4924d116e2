import { describe, expect, test } from 'vitest'
import { loadQuick } from '../../support/limits.ts'
import {
  AWAITED_LISTS,
  EVENT_TYPES,
  REFRESHED_LISTS,
  REFRESHED_SOURCES,
  imageCreatedType,
  namedBy,
  withVendor,
} from '../../../src/base/domain/event-types.ts'
import { EVENT_TYPE } from '../../sandbox/service/routes/webhooks.ts'
import { createTypeFilter } from '../../../src/webhooks/receive/event.ts'

describe('the event types table', () => {
  const { config } = loadQuick({ env: {}, cwd: '/' })
  const { vendor } = config.upstream

  test('has exactly the service’s types that the default of webhooks.types accepts', () => {
    const isWanted = createTypeFilter(config.webhooks.types, vendor)
    for (const { type } of Object.values(EVENT_TYPES)) expect(isWanted(withVendor(type, vendor)), type).toBe(true)
    expect(isWanted(withVendor('io.{vendor}.cr.image.deleted.v1', vendor))).toBe(false)
  })

  test('names the type that the sandbox sends', () => {
    expect(imageCreatedType('service')).toBe(EVENT_TYPE)
  })

  test('names for a refresh what an event can change, and the list of tags', () => {
    expect(REFRESHED_SOURCES).toEqual(['feeds', 'osv', 'catalog'])
    expect(REFRESHED_LISTS).toEqual(['images', 'tags'])
    expect(AWAITED_LISTS).toEqual(['/v1/tags'])
  })

  test('lets an event of an unknown type name an image', () => {
    expect(namedBy(EVENT_TYPES.snapshotPublished.type)).toBe('snapshot')
    expect(namedBy('com.example.other')).toBe('image')
    expect(namedBy(undefined)).toBe('image')
  })
})
