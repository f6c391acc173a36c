/* Physical memory that one process makes and another maps, sent as a file descriptor. */
#include "start.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const CUmemAllocationHandleType descriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static void send_descriptor(int socket, int fd)
{
	char byte = 0;
	union control control;
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	CHECK(sendmsg(socket, &message, 0) == 1);
}

static int receive_descriptor(int socket)
{
	int fd;
	char byte;
	union control control;
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	CHECK(recvmsg(socket, &message, 0) == 1 && message.msg_controllen > 0);
	memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
	return fd;
}

static CUdeviceptr map(CUmemGenericAllocationHandle h)
{
	CUdeviceptr p;
	CUmemAccessDesc rw = access_of(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
	OK(cuMemMap(p, 2 * MIB, 0, h, 0));
	OK(cuMemSetAccess(p, 2 * MIB, &rw, 1));
	return p;
}

/* The child finds the parent's value and leaves its own. */
static void child(int socket)
{
	CUmemGenericAllocationHandle h;
	start();
	int fd = receive_descriptor(socket);
	size_t before = free_bytes();
	OK(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, descriptor));
	close(fd);
	CUdeviceptr p = map(h);
	CHECK(before == free_bytes()); /* it is the parent's */
	CHECK(peek(p) == 17);
	poke(p, 18);
	OK(cuCtxSynchronize());
	OK(cuMemUnmap(p, 2 * MIB));
	OK(cuMemRelease(h));
	OK(cuMemAddressFree(p, 2 * MIB));
}

int main(void)
{
	int ends[2], fd, status;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		child(ends[1]);
		_exit(0);
	}
	CUmemGenericAllocationHandle h;
	CUmemAllocationProp prop = on_device(descriptor);
	start();
	OK(cuMemCreate(&h, 2 * MIB, &prop, 0));
	CUdeviceptr p = map(h);
	poke(p, 17);
	OK(cuMemExportToShareableHandle(&fd, h, descriptor, 0));
	send_descriptor(ends[0], fd);
	close(fd);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(peek(p) == 18);
	OK(cuMemUnmap(p, 2 * MIB));
	OK(cuMemRelease(h));
	OK(cuMemAddressFree(p, 2 * MIB));
	return 0;
}
