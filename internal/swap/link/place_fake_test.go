//go:build !gpu

package link

// onGPU says that the tests run on the driver that is installed, and not on the fake.
const onGPU = false
